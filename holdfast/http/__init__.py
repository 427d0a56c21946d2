"""What every HTTP door shares: the server, the envelope, who is calling, idempotency, limits.

It knows HTTP and no service. Each service's own door is `http.py` in its room; `app` hands them in.
"""
