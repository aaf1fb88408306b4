"""What users' files say, as types: a module a section of the file."""
