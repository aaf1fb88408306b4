"""Count the files and functions of Hedgerow that one small release enters, after all imports.

python benchmarks/walk.py [FILE …]      (with FILE names: list what is entered)
"""

import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import polars as pl

import hedgerow as hr

PACKAGE = str(Path(hr.__file__).parent)


def small_table() -> tuple[hr.Counts, hr.Plan]:
    """Return a table over a tree of three levels, and a plan for it."""
    areas = pl.DataFrame(
        [(f"r{i // 9}", f"d{i // 3}", f"m{i:02}") for i in range(27)],
        schema=["region", "district", "municipality"],
        orient="row",
    )
    axis = hr.Axis.from_frame("area", areas, levels=areas.columns)
    tree = hr.Tree([axis])
    table = areas.with_columns(count=pl.arange(27))
    counts = hr.Counts.from_frame(tree, table, count="count")
    plan = hr.make_plan(
        tree, budget=hr.EpsilonDelta("1", "1e-8"), allocation=hr.Uniform(), measure=hr.Survivors()
    )
    return counts, plan


def main() -> None:
    """Count; kernels are compiled on first use."""
    entered = set[tuple[str, str]]()

    def enter(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        is_ours = event == "call" and code.co_filename.startswith(PACKAGE)
        if is_ours and code.co_name not in {"<module>", "<genexpr>", "<lambda>"}:
            entered.add((code.co_filename.removeprefix(f"{PACKAGE}/"), code.co_qualname))

    counts, plan = small_table()
    hr.release(counts, plan)  # so that nothing is imported any more
    with TemporaryDirectory() as folder:
        threading.settrace(enter)
        sys.settrace(enter)
        hr.release(counts, plan).write(Path(folder, "out"))
        sys.settrace(None)
        threading.settrace(None)
    files = sorted({file for file, _ in entered})
    for file in files if "--list" in sys.argv else ():
        print(f"{sum(each == file for each, _ in entered):4}  {file}")
    print(f"{len(files)} files, {len(entered)} functions")


if __name__ == "__main__":
    main()
