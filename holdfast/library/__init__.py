"""One person's music library on several devices."""
