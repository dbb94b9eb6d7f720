import { ORDINARY_UID } from './attacked-server.ts';
import { tryAll } from './attempts.ts';

tryAll('this user', ['', 'namespaces', 'landlock', 'seccomp']);
if (process.getuid?.() === 0) tryAll('this user', [''], { TROUPE_KERNEL_UID: String(ORDINARY_UID) });
