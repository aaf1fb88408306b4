"""Kill releases at random instants until so many kills fell: ``python -m tests.release.kill_many``.

Each release is killed with SIGKILL at instants that are drawn afresh and resumed until it is there,
and must then pass `check`, be charged once, and have the noise of the one key there was.
"""

import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from hedgerow.release.descent import block, outline
from tests.release import killing
from tests.release.test_killed import MEASURES, assert_one_release, kill_and_resume

LATEST = 1.6  # seconds after the start of a process


def instants() -> Iterator[float]:
    """Up to four instants at which a release is killed."""
    draw = secrets.SystemRandom()
    yield from (draw.uniform(0.05, LATEST) for _ in range(draw.randint(1, 4)))


def main(kills: int) -> None:
    """Kill until it is enough; the first result that does not hold ends it."""
    outline.UNCUT_LEAVES = outline.UNCUT_LEAVES_OF_ALL = 0
    outline.MIN_JOBS, block.CHUNK_CELLS = 30, 1000
    fallen = releases = 0
    killed = killing.killed

    def counted(*what: object) -> int | None:
        nonlocal fallen
        code = killed(*what)  # type: ignore[arg-type]
        fallen += code == -9
        return code

    killing.killed = counted  # type: ignore[assignment]
    while fallen < kills:
        measure = list(MEASURES.values())[releases % len(MEASURES)]
        with TemporaryDirectory() as folder:
            keys = kill_and_resume(Path(folder), measure, list(instants()))
            assert_one_release(Path(folder), measure, keys)
        releases += 1
        sys.stdout.write(f"{fallen} kills, {releases} releases: all whole\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
