"""One kernel: marimo as a notebook's kernel runs it, with the reports and the behaviour that a server needs."""
