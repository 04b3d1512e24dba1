// Installed setuid root in an image of the tests: prints the user it runs as.
#include <stdio.h>
#include <unistd.h>

int main(void) {
    printf("%u\n", geteuid());
    return 0;
}
