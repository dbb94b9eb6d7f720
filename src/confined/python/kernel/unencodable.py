"""Text that UTF-8 cannot encode, such as "\\ud800". marimo drops a whole notification for one such character,
and with it an exception that a cell raised: it would count as a success."""

import msgspec
from marimo._messaging import notification_utils
from marimo._messaging.msgspec_encoder import encode_json_bytes


def install():
    """Patches marimo in this process; once, in the zygote."""
    notification_utils.serialize_kernel_message = _serialize(notification_utils.serialize_kernel_message)


def _serialize(serialize):
    def serialize_kernel_message(message):
        try:
            return serialize(message)
        except UnicodeEncodeError:
            return encode_json_bytes(readable(msgspec.to_builtins(message, enc_hook=str)))

    return serialize_kernel_message


def readable(value):
    """Returns the same value, with characters that UTF-8 cannot encode replaced by their Python escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {readable(key): readable(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [readable(member) for member in value]
    return value
