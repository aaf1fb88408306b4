"""Where a value stands in a release file, as its errors say."""

import pytest

from hedgerow.errors import SpecError
from hedgerow.spec.release_file import ReleaseFile
from hedgerow.spec.toml_file import LONGEST_TEXT, parse

LONG = f'"{"x" * (LONGEST_TEXT + 1)}"'

WHOLE = """
[table]
source = "table.csv"
[[axis]]
name = "place"
levels = ["town"]
areas = "towns.csv"
[privacy]
rho = 1
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('foo = "<fill me in>"', r"^replace the placeholders in <…>: foo$"),
        ('[table]\nsource = "<a file>"', r"placeholders in <…>: \[table\] source$"),
        ('[[axis]]\nname = "<a name>"', r"placeholders in <…>: \[\[axis\]\] 1 name$"),
        (f'[allocation.importance]\n"²" = {LONG}', r"^\[allocation\] importance has 201"),
        (f'[allocation.importance]\n"2020" = {LONG}', r"^\[allocation\] importance has 201"),
        (f'{WHOLE}[allocation.importance]\n"²" = [[1]]', r"^\[allocation\] importance"),
    ],
    ids=["top", "section", "list", "superscript", "year", "superscript-list"],
)
def test_a_key_of_digits_is_no_place_in_a_list(tmp_path, text, said):
    (tmp_path / "release.toml").write_text(text)
    with pytest.raises(SpecError, match=said):
        parse(tmp_path / "release.toml", ReleaseFile)
