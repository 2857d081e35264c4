/* SPDX-License-Identifier: MIT */
/* greeter.h: a library that has trace points and no dependencies. */
#ifndef GREETER_H
#define GREETER_H

/* Greets somebody so many times, on stdout. Returns the bytes it wrote. */
int greeter_greet(const char *who, int times);

#endif /* GREETER_H */
