"""The Spark engine: a session that keeps what it sees to itself, and tasks that quote nothing.

Spark writes down more than a release may show: event logs and its web pages count rows, logs and
exceptions quote them. So sessions made here log nothing, have no web pages and encrypt whatever
they write to disk (shuffled leaves, and broadcasts with the release key in them). Tasks hand a
failure that Hedgerow explains back as a row (a *fault*), to be raised on the driver; of any other
failure they tell where it was, but not what it said.
"""

import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import errorcode
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from hedgerow import errors
from hedgerow.declared import frozen
from hedgerow.errors import HedgerowError, MachineError, SpecError, outside_limits, reads_table
from hedgerow.machine import library

Frame = Any
"""A data frame of PySpark, which is imported only where it is used."""
Batches = Iterator[pa.RecordBatch]

SEALED = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.eventLog.enabled": "false",
    "spark.log.level": "OFF",
    # executors of their own heed this alone; extraJavaOptions stay the user's
    "spark.executor.defaultJavaOptions": "-Dorg.apache.logging.log4j.level=OFF",
    "spark.io.encryption.enabled": "true",
    # codes in folder names (state=01) stay text
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
"""What holds of every session that is made here, whatever the environment says."""
TASK = "hedgerow task: "
NEEDED = ("hedgerow", "numba", "numpy", "pandas", "polars", "pyarrow", "scipy")
"""Modules that executors need; of a failure to import, these names alone are told."""
MOST_CAUSES = 20
SPARK_EXCEPTION = "org.apache.spark.SparkException"
"""The class of what Spark's scheduler says, and of much else."""
PYTHON_EXCEPTION = "org.apache.spark.api.python.PythonException"

_MACHINE = re.compile(
    r"java\.net\.(Socket\w*|Connect|NoRouteToHost|PortUnreachable|Bind|UnknownHost)Exception"
    r"|java\.nio\.(file|channels)\.|java\.io\.(FileNotFound|InterruptedIO)Exception"
    r"|java\.lang\.(OutOfMemoryError|NoClassDefFoundError|(ClassNotFound|Interrupted)Exception)"
    r"|java\.util\.concurrent\.TimeoutException|javax\.net\."
    r"|org\.apache\.hadoop\.(hdfs|ipc|net|security|fs\.s3a|fs\.UnsupportedFileSystem)"
    r"|org\.apache\.spark\.(memory|network|rpc|shuffle|storage)\."
)
"""Java exceptions that no content of a table leads to, but a network, a disk or a cluster."""
_MACHINE_STATE = re.compile("08|53|57P0[123]|58|82")
"""SQLSTATEs of connections that are lost, servers that stop, and of memory or disks that end."""
_ERRNO = "|".join(map(re.escape, map(os.strerror, errorcode)))
_WORDS = {
    "java.io.IOException": re.compile(rf"(?:error=\d+, )?({_ERRNO})\Z"),
    SPARK_EXCEPTION: re.compile(r"(Python worker (?:exited unexpectedly|failed to connect back))"),
}
"""How those begin whose class does not tell: what is in parentheses quotes nothing."""
_SCHEDULER = re.compile(r"Job (?:\d+ cancelled|aborted)|\s*Error from python worker")
_LOST_TASK = re.compile(
    r"[^\n]*? most recent failure: "
    r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\)[^\n:]*: (?P<kind>[\w.$]+)"
)
_TASK = re.compile(
    rf"^RuntimeError: {TASK}(\w+ at \w+\.py:\d+(?: \([A-Za-z ,/]+\))?)", re.MULTILINE
)


@frozen
class SparkEngine:
    """Where Spark is.

    Attributes:
        master: ``local[2]``, ``spark://host:7077``, …; None: what spark-submit or the environment
            says.
        memory: of the driver, where this process starts it.
    """

    master: str | None = None
    memory: str = "2g"

    @contextmanager
    def session(self) -> Iterator[Any]:
        """Open the active session if there is one; else a new one, stopped at the end.

        Raises:
            SpecError: PySpark is not installed.
            MachineError: Spark does not start.
        """
        sql = _pyspark_sql()
        active = sql.SparkSession.getActiveSession()
        if active is not None:
            yield active
            return
        submitted = "PYSPARK_GATEWAY_PORT" in os.environ
        if not submitted and (self.master is None or self.master.startswith("local")):
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = sql.SparkSession.builder.appName("hedgerow")
        if self.master is not None:
            builder = builder.master(self.master)
        if not submitted:
            builder = builder.config("spark.driver.memory", self.memory)
        for name, value in SEALED.items():
            builder = builder.config(name, value)
        with spark_errors("Spark does not start; it needs Java 17 or later, and its master"):
            session = _started(builder)
        try:
            yield session
        finally:
            session.stop()


def _started(builder: Any) -> Any:
    """Return the session; Spark's standard error is dropped where this process starts it."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return _quietly(builder.getOrCreate)
    stderr = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        return _quietly(builder.getOrCreate)
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)


def _pyspark_sql() -> Any:
    return _quietly(lambda: library("pyspark.sql", "spark", 'the engine "spark"', SpecError))


@contextmanager
def spark_errors(what: str, *, of_table: bool = False) -> Iterator[None]:
    """Spark's failures as ours; its own words may quote the table and are dropped.

    Args:
        what: what failed, in words.
        of_table: the confidential table is read here.

    Raises:
        TableError: what a cluster or machine does not explain is the table's; see `outside_limits`.
        MachineError: ``what``, and one word for what failed, or where a task met it.
    """
    try:
        try:
            with _silenced():
                yield
        except Exception as error:
            if type(error).__module__.split(".")[0] not in {"pyspark", "py4j"}:
                raise
            causes = causes_of(error)
            failed = failed_of_machine(causes)
            if failed is None and of_table:
                said = "; ".join(dict.fromkeys(cause.said for cause in causes))
                raise outside_limits("the table", "cannot be read to its end", said) from None
            raise MachineError(f"{what}: {failed or causes[0].name}") from None
    except HedgerowError as error:
        error.__context__ = None  # Spark's words, which an error keeps that it was raised in
        raise


@contextmanager
def _silenced() -> Iterator[None]:
    """Keep PySpark from writing what an expression failed at, with its value, to standard error."""
    logger = import_module("pyspark.logger").PySparkLogger.getLogger
    loggers = [logger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    before = [each.disabled for each in loggers]
    for each in loggers:
        each.disabled = True
    try:
        yield
    finally:
        for each, disabled in zip(loggers, before, strict=True):
            each.disabled = disabled


@frozen
class Cause:
    """An exception of Spark's, of a database's or of Java's.

    Attributes:
        kind: its class.
        name: Spark's name for it, such as ``PATH_NOT_FOUND``, or its class; it quotes nothing.
        state: its SQLSTATE, if it has one.
        said: what it says, which may quote the table.
    """

    kind: str
    name: str
    state: str
    said: str


def causes_of(error: Exception) -> list[Cause]:
    """Return the Java exceptions behind one of PySpark's, each the cause of the one before."""
    java = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    if java is None:  # PySpark's own
        kind = type(error).__name__
        return [Cause(kind, _asked(error, "getCondition") or kind, "", "")]
    causes: list[Cause] = []
    while java is not None and len(causes) < MOST_CAUSES:
        kind = java.getClass().getName()
        name = _asked(java, "getCondition") or kind.rpartition(".")[2]
        state = _asked(java, "getSqlState") or _asked(java, "getSQLState")
        causes.append(Cause(kind, name, state.strip(), _asked(java, "getMessage")))
        java = java.getCause()
    return causes


def _asked(foreign: Any, question: str) -> str:
    try:
        return str(getattr(foreign, question)() or "")
    except Exception:  # noqa: BLE001 - it has no such method, or whatever it does
        return ""


def failed_of_machine(causes: list[Cause]) -> str | None:
    """Return what failed of a cluster or machine, in words that quote nothing; None: none did."""
    for cause in causes:
        if _MACHINE.match(cause.kind):
            return cause.name
        if _MACHINE_STATE.match(cause.state):
            return f"SQLSTATE {cause.state}"
        words = _WORDS.get(cause.kind) if not cause.state else None
        said = words.match(cause.said) if words else None
        if said:
            return said[1]
    last = causes[-1]
    if "." not in last.kind:
        return last.name
    if last.kind == SPARK_EXCEPTION and _SCHEDULER.match(last.said):
        return _failed_by_scheduler(last.said)
    return _failed_in_python(last.said) if last.kind == PYTHON_EXCEPTION else None


def _failed_by_scheduler(said: str) -> str | None:
    """Return why a task was lost, or a job ended, in Spark's own word; None: in the table's."""
    lost = _LOST_TASK.match(said)
    if lost is None:
        return _failed_in_python(said) or SPARK_EXCEPTION.rpartition(".")[2]
    kind = lost["kind"]
    if kind == PYTHON_EXCEPTION:
        return _failed_in_python(said)
    if "." in kind and kind != SPARK_EXCEPTION and not _MACHINE.match(kind):
        return None
    return kind.rpartition(".")[2]


def _failed_in_python(said: str) -> str | None:
    task = _TASK.search(said)
    if task:
        return task[1]
    missing = re.search(rf"No module named '({'|'.join(NEEDED)})\b", said)
    if missing:
        return (
            f"the Python of the executors has no {missing[1]}; "
            "set PYSPARK_PYTHON to one that has Hedgerow"
        )
    if "PYTHON_VERSION_MISMATCH" in said:
        return (
            "the executors have another version of Python than the driver; "
            "set PYSPARK_PYTHON to one that is the same"
        )
    return None


def mapped(frame: Frame, work: Callable[[Batches], Batches], schema: pa.Schema) -> Frame:
    """Return the rows that ``work`` makes of each partition, and in ``fault`` why it failed."""

    def guarded(batches: Batches) -> Batches:
        try:
            yield from work(batches)
        except Exception as error:  # noqa: BLE001 - it may quote the table
            fault = fault_of(error)
        else:
            return
        for _ in batches:  # Spark wants its rows taken
            pass
        yield _fault_row(schema, fault)

    return _quietly(lambda: frame.mapInArrow(guarded, spark_schema(schema)))


def applied(
    frame: Frame, key: str, work: Callable[[pa.Table], pa.RecordBatch], schema: pa.Schema
) -> Frame:
    """Return the row that ``work`` makes of each group, and in ``fault`` why it failed."""

    def guarded(table: pa.Table) -> pa.Table:
        try:
            return pa.Table.from_batches([work(table)])
        except Exception as error:  # noqa: BLE001 - it may quote the table
            fault = fault_of(error)
        return pa.Table.from_batches([_fault_row(schema, fault)])

    return _quietly(lambda: frame.groupBy(key).applyInArrow(guarded, spark_schema(schema)))


@reads_table
def collected(frame: Frame, what: str) -> pa.Table:
    """Return all rows of a small frame.

    Raises:
        HedgerowError: the first fault, in the order of the alphabet.
        TableError: the table cannot be read to its end.
        MachineError: the cluster or the machine failed.
    """
    with spark_errors(what, of_table=True):
        table = frame.toArrow()
    faults = sorted(fault for fault in table["fault"].to_pylist() if fault)
    if faults:
        kind, sentence, rule = faults[0].split("\n")
        breaks = (rule, None) if rule else None
        raise getattr(errors, kind)(sentence, confidential=rule or None, breaks=breaks)
    return table.drop_columns("fault")


FAULT = pa.field("fault", pa.string())
_KINDS = {
    pa.int32(): "int", pa.int64(): "bigint", pa.string(): "string", pa.binary(): "binary",
}  # fmt: skip


def spark_schema(schema: pa.Schema) -> str:
    """Return a schema in Spark's words; all columns may be null."""
    return ", ".join(f"`{field.name}` {_KINDS[field.type]}" for field in schema)


def fault_of(error: Exception) -> str:
    """Return a failure as text: its kind, its sentence, and the rule that a table breaks, if any.

    The rule is confidential and goes to the driver, inside the boundary; the values that break it
    stay where they are.

    Raises:
        RuntimeError: it is none of Hedgerow's, or the machine's, so that Spark tries again; it
            says where it was, but not what: that may quote the table.
    """
    where = traceback.extract_tb(error.__traceback__)[-1]
    if isinstance(error, HedgerowError) and not isinstance(error, MachineError):
        parts = type(error).__name__, str(error), error.breaks[0] if error.breaks else ""
        return "\n".join(part.replace("\n", " ") for part in parts)
    reason = f" ({error.strerror})" if isinstance(error, OSError) and error.strerror else ""
    place = f"{Path(where.filename).name}:{where.lineno}"
    raise RuntimeError(f"{TASK}{type(error).__name__} at {place}{reason}") from None


def _fault_row(schema: pa.Schema, fault: str) -> pa.RecordBatch:
    columns = [
        pa.array([fault if field.name == FAULT.name else None], field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _quietly(made: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas 3, which is not used
        return made()
