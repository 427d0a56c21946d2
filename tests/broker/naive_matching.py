"""Topic matching written as the standard tells it, by recursion over levels: slow, and plainly right."""


def naive_match(pattern: str, topic: str) -> bool:
    if topic.startswith("$") and pattern[0] in "+#":
        return False
    return _levels_match(pattern.split("/"), topic.split("/"))


def _levels_match(pattern: list[str], topic: list[str]) -> bool:
    if pattern == ["#"]:
        return True
    if not pattern or not topic:
        return pattern == topic
    if pattern[0] not in ("+", topic[0]):
        return False
    return _levels_match(pattern[1:], topic[1:]) or (len(topic) == 1 and pattern[1:] == ["#"])
