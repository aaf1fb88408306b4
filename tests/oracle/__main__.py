"""Replay the plans of the oracle and compare; or record them anew, and print what changed.

`python -m tests.oracle [NAME …]` compares, and ends with 1 where something is otherwise;
`python -m tests.oracle record [NAME …]` says the same, and keeps what is now.
"""

import sys

from tests.oracle.plans import CASES
from tests.oracle.recording import Recording, changes, kept_names, path_of, recorded_case


def main(arguments: list[str]) -> int:
    """Go over the plans that are named, or over all."""
    anew = arguments[:1] == ["record"]
    names = arguments[anew:] or list(CASES)
    if unknown := [name for name in names if name not in CASES]:
        print(f"no plan is called {unknown[0]!r}; there are {'; '.join(CASES)}")
        return 2
    changed = 0
    for name in names:
        case, fresh = recorded_case(name)
        found = list(changes(Recording.read(name), fresh, case.left_out))
        changed += bool(found)
        print(f"{name}: {'as recorded' if not found else ''}", *found, sep="\n  ", flush=True)
        if anew and found:
            fresh.write(name)
    for path in sorted(kept_names() - {path_of(name).name for name in CASES}):
        print(f"{path}: is no plan's" + (", and is removed" if anew else ""))
        changed += 1
        if anew:
            path_of("").with_name(path).unlink()
    print(
        f"{changed} of {len(names)} plans {'were recorded anew' if anew else 'are not as recorded'}"
    )
    return int(changed > 0 and not anew)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
