import base64

import pytest

from config.stack import StackError
from config.stack.rootkey import require_root_key

KEY = base64.b64encode(bytes(32)).decode()
OTHER_KEY = base64.b64encode(bytes(31) + b"1").decode()


def test_first_key_is_noted_and_stays_the_only_one(tmp_path):
    noted = tmp_path / "root.fingerprint"
    file = tmp_path / "root.key"
    file.write_text(f"{KEY}\n")

    require_root_key({"ROOT_KEY": KEY}, noted)
    require_root_key({"ROOT_KEY_FILE": str(file), "ROOT_KEY": OTHER_KEY}, noted)

    assert noted.read_text() == "165b4ef80a84dfde\n"
    with pytest.raises(StackError, match="of ROOT_KEY is not the one this state was made with"):
        require_root_key({"ROOT_KEY": OTHER_KEY}, noted)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "must be 32 bytes in base64, not 0"),
        (b"AAAA", "must be 32 bytes in base64, not 3"),
        (b"no base64!", "is not base64"),
        (b"\xff\xfe", "is no text"),
    ],
)
def test_broken_key_is_named_and_not_noted(tmp_path, content, complaint):
    file = tmp_path / "root.key"
    file.write_bytes(content)

    with pytest.raises(StackError, match=complaint) as caught:
        require_root_key({"ROOT_KEY_FILE": str(file)}, tmp_path / "root.fingerprint")

    assert str(file) in str(caught.value)
    assert not (tmp_path / "root.fingerprint").exists()


def test_missing_key_file_is_named(tmp_path):
    with pytest.raises(StackError, match=r"root\.key cannot be read: No such file or directory"):
        require_root_key({"ROOT_KEY_FILE": str(tmp_path / "root.key")}, tmp_path / "root.fingerprint")


def test_start_with_another_root_key_is_refused(used):
    used.start()
    used.stop()
    right = used.state.root_key_file.read_text()
    used.state.root_key_file.write_text(OTHER_KEY)
    try:
        with pytest.raises(StackError, match="is not the one this state was made with"):
            used.start()
    finally:
        used.state.root_key_file.write_text(right)

    assert not used.postgres.is_running()
