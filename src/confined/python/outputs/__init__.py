"""The outputs of cells as they leave the kernel: what may be sent, with its text and its table."""
