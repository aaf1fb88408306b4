"""PySpark's daemon, which has imported what tasks need before it forks a worker for one.

A test kills workers, or begins where there are none: each new one would import it all again.
"""

from pyspark.daemon import manager

from hedgerow.spark import executors  # noqa: F401 - for the workers

if __name__ == "__main__":
    manager()
