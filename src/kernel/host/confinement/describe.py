"""The start-up line: which layers there are, and what is not covered. First word: full | partial | none."""


def describe(found, network="open", uid=None) -> str:
    layers, gaps = [], list(found.notes)
    if found.namespaces:
        kinds = ([] if found.root else ["user"]) + ["pid", "mount", "ipc"] + (["net"] if network == "none" else [])
        layers.append("+".join(kinds) + " namespaces")
    else:
        gaps.append(
            f"no namespaces ({found.why}): files of this user can be chmod-ed, /tmp and unix sockets are shared"
        )
        if found.landlock < 6:
            gaps.append(
                "other processes of this user can be signalled"
                + (", except the server" if found.seccomp else ", the server too")
            )
    if found.root:
        layers.append(f"uid {uid}" if uid else "RUNNING AS ROOT")
    if found.landlock:
        layers.append(f"Landlock {found.landlock}")
    else:
        gaps.append(
            "no Landlock: "
            + ("this user's other files are readable" if found.namespaces else "the server's files are readable")
        )
    if found.seccomp:
        layers.append("seccomp")
    if found.root and not uid:
        gaps.append("set a kernel uid or do not start as root")
    text = f"{find_level(found, gaps)}: {', '.join([*layers, 'rlimits'])}; network {network}"
    return text + (f"; NOT covered: {'; '.join(gaps)}" if gaps else "")


def find_level(found, gaps):
    if found.namespaces and not gaps:
        return "full"
    return "partial" if found.namespaces or found.landlock else "none"
