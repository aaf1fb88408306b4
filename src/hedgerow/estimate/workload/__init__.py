"""Any set of cuboids: estimated together by least squares, and settled to tables that agree."""
