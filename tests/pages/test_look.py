"""The look: nothing bare, nothing foreign, nothing stale, enough contrast."""

import hashlib
import re
from pathlib import Path

import pytest
from django.test import Client

ROOT = Path(__file__).parents[2]
VENDOR = ROOT / "static" / "vendor"
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
# The product's name, and what is an example of itself.
BARE = {"Forget-me-not", "agent", "officer", "1,204", "18", "…4f2a", "…9QxZ", "0198c0de-0000-7000-8000-0000000000ad"}


def listed_files():
    rows = re.findall(r"^\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|$", (VENDOR / "README.md").read_text(), re.MULTILINE)
    return dict(rows)


def test_vendored_files_are_the_listed_ones():
    def digest(pattern):
        return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(VENDOR.glob(pattern)))).hexdigest()

    listed = listed_files()
    assert {pattern: digest(pattern) for pattern in listed} == listed
    files = {file for pattern in listed for file in VENDOR.glob(pattern)}
    others = {file.name for file in VENDOR.rglob("*") if file.is_file() and file not in files}
    assert others == {"README.md", "LICENSE", "LICENSE.md"}


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: str(file.relative_to(ROOT / "templates")))
def test_every_word_of_a_template_can_be_translated(file):
    text = re.sub(
        r"{% block kind %}.*?{% endblock %}|{% blocktranslate.*?{% endblocktranslate %}|{#.*?#}",
        " ",
        file.read_text(),
        flags=re.DOTALL,
    )
    text = re.sub(r"{%.*?%}|{{.*?}}|<svg.*?</svg>", "\n", text, flags=re.DOTALL)
    bare = {line.strip() for line in re.sub(r"<[^>]*>", "\n", text).splitlines()} - BARE
    assert not {line for line in bare if re.search(r"[A-Za-z]{2}", line) and not line.startswith(("fmn_", "actor:"))}


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: str(file.relative_to(ROOT / "templates")))
def test_no_template_needs_what_the_policy_refuses(file):
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|https?://(?!www\.w3\.org)", file.read_text())


def test_static_files_may_be_kept_for_ever_because_their_address_names_their_content():
    page = Client().get("/").content.decode()
    address = re.search(r'href="(/static/[0-9a-f]{16}/css/look\.css)"', page)[1]
    answer = Client().get(address)
    assert b"".join(answer.streaming_content).startswith(b"/* The look")
    answer.close()
    assert "immutable" in answer["Cache-Control"]
    assert Client().get(address.replace(address.split("/")[2], "0" * 16)).status_code == 404


# --- colours ----------------------------------------------------------------------------------------------------------

TOKEN = re.compile(
    r"--([\w-]+): light-dark\(oklch\(([\d.]+)% ([\d.]+) ([\d.]+)\), oklch\(([\d.]+)% ([\d.]+) ([\d.]+)\)\)"
)
TEXT = [
    *(("ink", ground) for ground in ("paper", "surface", "blue-soft", "warm-soft", "red-soft", "green-soft")),
    *(("soft-ink", ground) for ground in ("paper", "surface")),
    *(("blue", ground) for ground in ("paper", "surface", "blue-soft")),
    *(("on-blue", "blue"), ("on-red", "red"), ("red", "surface"), ("red", "red-soft")),
    *(("warm", "warm-soft"), ("green", "green-soft")),
]
CONTROLS = [("edge", "paper"), ("edge", "surface"), ("blue", "paper")]


def tokens():
    """Each colour in light and in dark, as linear sRGB luminance."""
    found = TOKEN.findall((ROOT / "static/css/look.css").read_text())
    return {name: (luminance(*map(float, rest[:3])), luminance(*map(float, rest[3:]))) for name, *rest in found}


def luminance(lightness, chroma, hue):
    """OKLCH to relative luminance: Ottosson's OKLab matrices, then WCAG's weights of linear sRGB."""
    from math import cos, radians, sin

    light, a, b = lightness / 100, chroma * cos(radians(hue)), chroma * sin(radians(hue))
    long, middle, short = (
        (light + first * a + second * b) ** 3
        for first, second in (
            (0.3963377774, 0.2158037573),
            (-0.1055613458, -0.0638541728),
            (-0.0894841775, -1.2914855480),
        )
    )
    red = 4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short
    green = -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short
    blue = -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short
    return sum(w * min(max(c, 0), 1) for w, c in ((0.2126, red), (0.7152, green), (0.0722, blue)))


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("pairs", "least"), [(TEXT, 4.5), (CONTROLS, 3.0)], ids=["text", "controls"])
def test_colours_can_be_told_apart(theme, pairs, least):
    known = tokens()

    def contrast(first, second):
        high, low = sorted((known[first][theme], known[second][theme]), reverse=True)
        return (high + 0.05) / (low + 0.05)

    assert {pair: round(contrast(*pair), 2) for pair in pairs if contrast(*pair) < least} == {}
