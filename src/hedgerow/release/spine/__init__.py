"""The release of cuboids along a spine, job by job."""
