"""Chat in the client: what is stored, what is sent, one connection, gaps filled over HTTP."""
