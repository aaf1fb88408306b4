"""Foreign scripts of pages, bundled: see LICENSES.txt."""
