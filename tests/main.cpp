#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
// which this follows from only where the header is not precompiled
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
