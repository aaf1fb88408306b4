"""Where tables come from: files, data frames, databases."""
