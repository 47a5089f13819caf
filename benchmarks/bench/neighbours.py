"""Open many tenants in one process: `python -m benchmarks.bench.neighbours COUNT` prints their keys as JSON."""

import json
import sys

import django


def main(count: int) -> None:
    django.setup()
    from accounts.types import Mode  # models, which need the set-up
    from config.provisioning import open_organisation

    opened = [open_organisation(f"Neighbour {number}", Mode.SANDBOX)["keys"] for number in range(count)]
    json.dump(opened, sys.stdout)


if __name__ == "__main__":
    main(int(sys.argv[1]))
