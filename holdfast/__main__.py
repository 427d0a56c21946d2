"""`python -m holdfast` is `holdfast`."""

from holdfast.cli.start import main

main()
