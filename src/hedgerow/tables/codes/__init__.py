"""How codes are read: rules that tell levels, codes written as floats, what is not stated."""
