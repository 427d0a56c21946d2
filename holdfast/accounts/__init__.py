"""Users, passwords, tokens, sessions: who someone is. What they may do is each service's own business.

`Accounts` is the face; `Sessions.verify` is what every door asks. Must not know any service.
"""

from holdfast.accounts.accounts import Accounts
from holdfast.accounts.model import LoggedIn, SessionsEnded, User
from holdfast.accounts.sessions import Session, Sessions

__all__ = ["Accounts", "LoggedIn", "Session", "Sessions", "SessionsEnded", "User"]
