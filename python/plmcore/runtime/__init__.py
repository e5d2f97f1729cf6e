"""What Python adds to the native runtime: gradients, new tensors, random numbers, kinds of arguments."""
