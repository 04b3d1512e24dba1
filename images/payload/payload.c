/* The only file of the image demo/static:1, which has no shell and no C
 * library. Prints its arguments, user and image; "exit N" ends with N,
 * "kill N" by signal N, "pause" waits for a signal. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv)
{
    const char* image = getenv("IMAGE_NAME");
    printf("image=%s uid=%d gid=%d args=%d", image ? image : "demo/static:1", (int)getuid(),
           (int)getgid(), argc - 1);
    for (int i = 1; i < argc; ++i)
        printf(" %s", argv[i]);
    putchar('\n');
    fflush(stdout);
    if (argc == 3 && strcmp(argv[1], "exit") == 0)
        return atoi(argv[2]);
    if (argc == 3 && strcmp(argv[1], "kill") == 0)
        raise(atoi(argv[2]));
    if (argc == 2 && strcmp(argv[1], "pause") == 0)
        pause();
    return 0;
}
