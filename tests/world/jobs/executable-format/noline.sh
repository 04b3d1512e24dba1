echo without a line
