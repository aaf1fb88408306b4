"""What public files say: facts, their numbers, and what they fix."""
