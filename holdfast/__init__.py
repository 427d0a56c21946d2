"""holdfast: the back end for apps that must work offline."""

__version__ = "0.1.0"
