"""What every backend must do: a class for each kind of step, run by the test file of that name."""
