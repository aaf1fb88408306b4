"""The table of limits: each with its reason, each used, none beside it under the same name."""

import re
from pathlib import Path

from hedgerow import limits

SOURCE = Path(limits.__file__).parent
NAMES = [name for name in vars(limits) if name.isupper()]


def test_each_limit_has_its_reason():
    reason = re.compile(r'(?m)^([A-Z_]+) = .+\n"""[^"]+"""$')
    assert reason.findall(Path(limits.__file__).read_text()) == NAMES


def test_each_limit_is_used_and_none_has_a_second_value():
    texts = {
        path: path.read_text() for path in SOURCE.rglob("*.py") if path != Path(limits.__file__)
    }
    words = {path: set(re.findall(r"\b[A-Z_]+\b", text)) for path, text in texts.items()}
    for name in NAMES:
        used = [path for path in texts if name in words[path]]
        assert used, f"{name} limits nothing"
        again = [path for path in used if re.search(rf"(?m)^{name}\b.* = ", texts[path])]
        assert again == [], f"{name} stands in limits.py"
