"""What will be measured with which noise, decided from public facts alone."""
