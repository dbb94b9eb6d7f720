/*
 * Records what a process does to one file: loaded with LD_PRELOAD, it takes the place of the functions of the C library that write
 * and flush, calls the system itself, and appends an entry to a log (write-log.ts reads it).
 *
 * RECORDED_FOLDER and RECORDED_FILE are the paths of the folder and of the file in it, RECORD_LOG that of the log. An entry of a write
 * is in the log before the write begins, and an entry of a flush after it has ended: the log never says that more is on disk than is.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The head of an entry; `bytes` of data come after it. */
struct entry {
  uint32_t kind;
  uint32_t bytes;
  uint64_t offset;
  uint64_t token; /* joins the begin of an operation with its end */
};

enum kind { WRITE = 'W', WRITTEN = 'w', FLUSH = 'F', FLUSHING = 'f', SIZE = 'S', FOLDER = 'D', MAPPED = 'M', LOST = 'L' };

static int log_descriptor = -1;
static uint64_t tokens;

static uint64_t new_token(void) {
  return ((uint64_t)getpid() << 32) | (__atomic_add_fetch(&tokens, 1, __ATOMIC_RELAXED) & 0xffffffff);
}

static void append(enum kind kind, uint64_t offset, uint64_t token, const struct iovec *data, int count) {
  struct iovec parts[1025];
  struct entry head = {kind, 0, offset, token};
  if (count > 1024) {
    head.kind = LOST;
    count = 0;
  }
  for (int i = 0; i < count; i++) {
    head.bytes += data[i].iov_len;
    parts[i + 1] = data[i];
  }
  parts[0] = (struct iovec){&head, sizeof head};
  /* One call, so that entries of several threads and processes are not mixed. */
  if (syscall(SYS_writev, log_descriptor, parts, count + 1) != (long)(sizeof head + head.bytes)) abort();
}

static int is_same(int descriptor, const char *variable) {
  struct stat wanted, found;
  const char *path = getenv(variable);
  return path != NULL && stat(path, &wanted) == 0 && fstat(descriptor, &found) == 0 && wanted.st_dev == found.st_dev &&
         wanted.st_ino == found.st_ino;
}

static int is_recorded(int descriptor) {
  const char *path = getenv("RECORD_LOG");
  if (path == NULL || !is_same(descriptor, "RECORDED_FILE")) return 0;
  if (log_descriptor < 0) {
    int opened = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    int none = -1;
    if (opened < 0) abort();
    if (!__atomic_compare_exchange_n(&log_descriptor, &none, opened, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) close(opened);
  }
  return 1;
}

static ssize_t written(int descriptor, const struct iovec *data, int count, uint64_t offset, uint64_t token, ssize_t result) {
  ssize_t wanted = 0;
  for (int i = 0; i < count; i++) wanted += data[i].iov_len;
  if (result != wanted) append(LOST, offset, token, NULL, 0);
  /* A write to a descriptor of O_DSYNC is on disk when it returns. */
  else if (fcntl(descriptor, F_GETFL) & O_DSYNC) append(WRITTEN, offset, token, NULL, 0);
  return result;
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off64_t offset) {
  if (!is_recorded(descriptor)) return syscall(SYS_pwrite64, descriptor, bytes, length, offset);
  struct iovec data = {(void *)bytes, length};
  uint64_t token = new_token();
  append(WRITE, offset, token, &data, 1);
  return written(descriptor, &data, 1, offset, token, syscall(SYS_pwrite64, descriptor, bytes, length, offset));
}

ssize_t pwrite(int descriptor, const void *bytes, size_t length, off_t offset) {
  return pwrite64(descriptor, bytes, length, offset);
}

ssize_t pwritev64(int descriptor, const struct iovec *data, int count, off64_t offset) {
  if (!is_recorded(descriptor)) return syscall(SYS_pwritev, descriptor, data, count, offset, 0);
  uint64_t token = new_token();
  append(WRITE, offset, token, data, count);
  return written(descriptor, data, count, offset, token, syscall(SYS_pwritev, descriptor, data, count, offset, 0));
}

ssize_t pwritev(int descriptor, const struct iovec *data, int count, off_t offset) {
  return pwritev64(descriptor, data, count, offset);
}

ssize_t writev(int descriptor, const struct iovec *data, int count) {
  if (!is_recorded(descriptor)) return syscall(SYS_writev, descriptor, data, count);
  uint64_t offset = lseek(descriptor, 0, SEEK_CUR), token = new_token();
  append(WRITE, offset, token, data, count);
  return written(descriptor, data, count, offset, token, syscall(SYS_writev, descriptor, data, count));
}

ssize_t write(int descriptor, const void *bytes, size_t length) {
  if (!is_recorded(descriptor)) return syscall(SYS_write, descriptor, bytes, length);
  struct iovec data = {(void *)bytes, length};
  return writev(descriptor, &data, 1);
}

static int flush(int descriptor, long call) {
  if (is_recorded(descriptor)) {
    uint64_t token = new_token();
    append(FLUSHING, 0, token, NULL, 0);
    int result = syscall(call, descriptor);
    if (result == 0) append(FLUSH, 0, token, NULL, 0);
    return result;
  }
  int result = syscall(call, descriptor);
  if (result == 0 && log_descriptor >= 0 && is_same(descriptor, "RECORDED_FOLDER")) append(FOLDER, 0, new_token(), NULL, 0);
  return result;
}

int fsync(int descriptor) { return flush(descriptor, SYS_fsync); }

int fdatasync(int descriptor) { return flush(descriptor, SYS_fdatasync); }

int ftruncate64(int descriptor, off64_t length) {
  if (is_recorded(descriptor)) append(SIZE, length, new_token(), NULL, 0);
  return syscall(SYS_ftruncate, descriptor, length);
}

int ftruncate(int descriptor, off_t length) { return ftruncate64(descriptor, length); }

void *mmap64(void *address, size_t length, int protection, int flags, int descriptor, off64_t offset) {
  /* Writes through memory would not be seen here. */
  if (descriptor >= 0 && (protection & PROT_WRITE) && (flags & MAP_SHARED) && is_recorded(descriptor))
    append(MAPPED, offset, new_token(), NULL, 0);
  return (void *)syscall(SYS_mmap, address, length, protection, flags, descriptor, offset);
}

void *mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset) {
  return mmap64(address, length, protection, flags, descriptor, offset);
}
