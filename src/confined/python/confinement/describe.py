"""The start-up line: the layers that this machine has, and the gaps. First word: full | partial | none."""


from confinement import landlock


def describe(found, network="open", uid=None, has_groups=False, has_weights=False) -> str:
    """
    `has_groups`: memory is limited by control groups. `has_weights`: control groups also divide the processors among
    workspaces.
    """
    layers, gaps = [], list(found.notes)
    if found.namespaces:
        kinds = ([] if found.root else ["user"]) + ["pid", "mount", "ipc"] + (["net"] if network == "none" else [])
        layers.append("+".join(kinds) + " namespaces")
    else:
        sockets = "" if found.landlock >= landlock.ABI_WITH_SOCKETS else "unix sockets of other programs can be used, "
        gaps.append(
            f"no namespaces ({found.why}): {'' if found.decides_modes else 'files of this user can be chmod-ed, '}/dev/shm is shared and not limited, "
            f"{sockets}processes are not limited"
        )
        if found.landlock < 6:
            gaps.append(
                "other processes of this user can be signalled"
                + (", except the server" if found.seccomp else ", the server too")
            )
    if found.root:
        has_uid = uid and found.uid_why is None
        layers.append(f"uid {uid}" if has_uid else "RUNNING AS ROOT")
        if not has_uid:
            gaps.append(
                f"kernels do not run as uid {uid} ({found.uid_why})"
                if uid
                else "kernels run as root without its capabilities: set TROUPE_KERNEL_UID or do not start as root"
            )
            if not found.namespaces:
                gaps.append("what only root may read of /proc and /sys is readable")
            if not found.landlock:
                gaps.append(
                    "no Landlock: what only root may read below /usr, /etc, /sys and /proc/sys is readable"
                    if found.namespaces
                    else "no Landlock: the server's files are readable, and all files and devices of this machine can be read and written"
                )
            if found.landlock < landlock.ABI_WITH_SCOPES:
                gaps.append("abstract sockets of programs that trust root can be used")
        if found.namespaces and not found.counts_pids:
            gaps.append("processes are not limited (root, on a Linux before 6.14 or with a read-only /proc/sys)")
    if found.landlock:
        layers.append(f"Landlock {found.landlock}")
    elif not found.root or has_uid:
        gaps.append(
            "no Landlock: "
            + (
                "what this user may read below /usr and /etc is readable"
                if found.namespaces
                else "the server's files are readable"
            )
        )
    if found.seccomp:
        layers.append("seccomp with a supervisor for modes of files" if found.decides_modes else "seccomp")
    else:
        gaps.append("no seccomp: io_uring, keyrings and performance counters can be used")
    layers += ["memory by cgroup"] * has_groups + ["processors shared by workspaces"] * has_weights + ["rlimits"]
    text = f"{find_level(found, gaps)}: {', '.join(layers)}; network {network}"
    return text + (f"; NOT covered: {'; '.join(gaps)}" if gaps else "")


def find_level(found, gaps):
    if found.namespaces and not gaps:
        return "full"
    return "partial" if found.namespaces or found.landlock else "none"
