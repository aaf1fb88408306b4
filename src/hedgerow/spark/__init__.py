"""The Spark engine: the same jobs as the local one, shipped to executors."""
