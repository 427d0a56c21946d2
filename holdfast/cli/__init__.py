"""The command line: thin. Each command reads settings, calls the room that does the work, prints."""
