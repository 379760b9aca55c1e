/*
 * A disk that keeps only what was synced, for the real binary (rule L4). kill -9 leaves the page cache, so a
 * sync that was forgotten goes unnoticed; here everything below HW_POWER_DIR is kept a second time in
 * HW_POWER_IMAGE, as a disk would have it if the power went now:
 *
 *   files/ID    the content of a file when it was synced last
 *   folders/ID  the names in a folder when the folder was synced last: "f ID NAME" or "d ID NAME" a line
 *
 * ID is inode number and time of birth, for inode numbers are used again. Nothing else has to be watched:
 * a write, a name, a removal counts when, and only when, a sync takes it along. What cannot be copied ends
 * the process, so that no test passes by it. The real sync is left out: the test only plays the power loss.
 *
 * HW_POWER_IGNORE=files or folders leaves that kind of sync out of the image: a test's twin that must fail.
 * HW_POWER_FULL names a file; while it exists the disk is full for the calls it lists, a word each:
 * allocate, write (half of it is written), create.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *folder, *image, *ignored, *full;
/* Two syncs of one file must not leave the older content. */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
    folder = getenv("HW_POWER_DIR");
    image = getenv("HW_POWER_IMAGE");
    ignored = getenv("HW_POWER_IGNORE");
    full = getenv("HW_POWER_FULL");
}

static void give_up(const char *what) {
    fprintf(stderr, "power_loss: %s: %s\n", what, strerror(errno));
    abort();
}

static int below(const char *path) {
    size_t length = folder ? strlen(folder) : 0;
    return length && !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

static int is_ours(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = folder ? readlink(link, path, sizeof path - 1) : -1;
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

/* The id under which the image keeps it; answers the file type. */
static mode_t identify(int at, const char *name, char id[80]) {
    struct statx found;
    int flags = AT_SYMLINK_NOFOLLOW | (*name ? 0 : AT_EMPTY_PATH);
    if (statx(at, name, flags, STATX_INO | STATX_TYPE | STATX_BTIME, &found)) {
        if (errno == ENOENT) return 0; /* removed meanwhile */
        give_up("statx");
    }
    if (!(found.stx_mask & STATX_BTIME)) give_up("this file system keeps no time of birth");
    snprintf(id, 80, "%llu-%lld-%u", (unsigned long long)found.stx_ino,
             (long long)found.stx_btime.tv_sec, found.stx_btime.tv_nsec);
    return found.stx_mode & S_IFMT;
}

static void save_content(int from, int to) {
    char piece[1 << 16];
    ssize_t count;
    for (off_t at = 0; (count = pread(from, piece, sizeof piece, at)) > 0; at += count)
        if (REAL(write)(to, piece, count) != count) give_up("write");
    if (count < 0) give_up("read");
}

static void save_names(int from, int to) {
    DIR *names = fdopendir(dup(from));
    if (!names) give_up("fdopendir");
    for (struct dirent *entry; (entry = readdir(names));) {
        char id[80];
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        mode_t type = identify(from, entry->d_name, id);
        if (type) dprintf(to, "%c %s %s\n", type == S_IFDIR ? 'd' : 'f', id, entry->d_name);
    }
    closedir(names);
}

static int sync_to_image(int fd) {
    char id[80], link[64], path[PATH_MAX], unfinished[PATH_MAX + 8];
    int is_folder = identify(fd, "", id) == S_IFDIR;
    const char *kind = is_folder ? "folders" : "files";
    if (ignored && !strcmp(ignored, kind)) return 0;
    pthread_mutex_lock(&one_at_a_time);
    snprintf(path, sizeof path, "%s/%s/%s", image, kind, id);
    snprintf(unfinished, sizeof unfinished, "%s.new", path);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int from = REAL(open)(link, O_RDONLY | O_CLOEXEC);
    int to = REAL(open)(unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (from < 0 || to < 0) give_up(path);
    is_folder ? save_names(from, to) : save_content(from, to);
    close(from);
    close(to);
    if (rename(unfinished, path)) give_up(path);
    pthread_mutex_unlock(&one_at_a_time);
    return 0;
}

int fsync(int fd) { return is_ours(fd) ? sync_to_image(fd) : REAL(fsync)(fd); }
int fdatasync(int fd) { return is_ours(fd) ? sync_to_image(fd) : REAL(fdatasync)(fd); }

/* Whether the disk is full for such a call. */
static int is_full(const char *call) {
    char words[64] = "";
    int fd = full ? REAL(open)(full, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) return 0;
    ssize_t count = read(fd, words, sizeof words - 1);
    close(fd);
    if (count <= 0 || !strstr(words, call)) return 0;
    errno = ENOSPC;
    return 1;
}

int fallocate(int fd, int mode, off_t offset, off_t length) {
    if (full && is_ours(fd) && is_full("allocate")) return -1;
    return REAL(fallocate)(fd, mode, offset, length);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
    return fallocate(fd, mode, offset, length);
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
    if (full && is_ours(fd) && is_full("write")) {
        /* A full disk takes what still fits, and nothing of the next call. */
        if (length < 2) return -1;
        static _Thread_local int refuse;
        refuse = !refuse;
        if (!refuse) return errno = ENOSPC, -1;
        length /= 2;
    }
    return REAL(pwrite)(fd, data, length, offset);
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) {
    return pwrite(fd, data, length, offset);
}

static int open_file(const char *path, int flags, mode_t mode) {
    if (full && (flags & O_CREAT) && below(path) && access(path, F_OK) && is_full("create")) return -1;
    return REAL(open)(path, flags, mode);
}

int open(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    return open_file(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, mode_t) : 0;
    va_end(more);
    return open_file(path, flags | O_LARGEFILE, mode);
}
