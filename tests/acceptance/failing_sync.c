/* A disk that cannot confirm: fsync and fdatasync of a write-ahead log fail as long as the file that FAILING_SYNC
   names is there. One that says "once" goes with the first failure. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int must_fail(int fd) {
    const char *order = getenv("FAILING_SYNC");
    char link[64], path[4096], said[8] = "";
    FILE *file;
    ssize_t length;
    if (order == NULL || access(order, F_OK) != 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, sizeof path - 1);
    if (length < 4 || strncmp(path + length - 4, "-wal", 4) != 0) return 0;
    file = fopen(order, "r");
    if (file == NULL) return 0;
    if (fgets(said, sizeof said, file) != NULL && strncmp(said, "once", 4) == 0) unlink(order);
    fclose(file);
    return 1;
}

static int synced(const char *name, int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    if (must_fail(fd)) {
        errno = EIO;
        return -1;
    }
    return real(fd);
}

int fsync(int fd) { return synced("fsync", fd); }
int fdatasync(int fd) { return synced("fdatasync", fd); }
