"""The outputs of cells in the form in which they leave the kernel: sendable values, with text and table."""
