"""What can be wrong with a request of chat over HTTP. (The WebSocket's words are in `reasons`.)"""

from __future__ import annotations

from holdfast.errors import Conflict, Forbidden, NotFound


class GroupNotFound(NotFound):
    """There is no such group, or you are not in it."""

    status, number, reason = 404, 30, "group_not_found"


class MemberNotFound(NotFound):
    """This user is not in the group."""

    status, number, reason = 404, 31, "member_not_found"


class UserNotFound(NotFound):
    """There is no such user."""

    status, number, reason = 404, 32, "user_not_found"


class RoleTooLow(Forbidden):
    """Your role in this group does not allow this."""

    status, number, reason = 403, 30, "role_too_low"


class OwnerStays(Forbidden):
    """The owner cannot leave: hand the group to another member first."""

    status, number, reason = 403, 31, "owner_stays"


class GroupFull(Conflict):
    """The group has as many members as it may have."""

    status, number, reason = 409, 30, "group_full"
