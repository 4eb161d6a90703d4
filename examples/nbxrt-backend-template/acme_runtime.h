/* What the header of a vendor looks like; yours is in the vendor's SDK. */
#ifndef ACME_RUNTIME_H
#define ACME_RUNTIME_H
#include <stddef.h>

typedef enum {
    acmeSuccess = 0,
    acmeInvalidValue = 1,
    acmeOutOfMemory = 2,
    acmeNoDevice = 3,
    acmeBadDevice = 4,
    acmeBadHandle = 5,
    acmeUnknown = 99
} acmeError;
typedef enum { acmeHostToHost, acmeHostToDevice, acmeDeviceToHost, acmeDeviceToDevice, acmeAny } acmeDirection;
typedef struct acmeQueueOpaque *acmeQueue;
typedef struct acmeMarkOpaque *acmeMark;

acmeError acmeDeviceCount(int *count);
acmeError acmeSetDevice(int device);
acmeError acmeGetDevice(int *device);
acmeError acmeSync(void);
acmeError acmeMemory(size_t *unused, size_t *all);
acmeError acmeAllocate(void **address, size_t nbytes, unsigned flags);
acmeError acmeRelease(void *address);
acmeError acmeCopy(void *to, const void *from, size_t nbytes, acmeDirection direction);
acmeError acmeCopyOn(acmeQueue queue, void *to, const void *from, size_t nbytes, acmeDirection direction);
acmeError acmeFill(void *address, int value, size_t nbytes);
acmeError acmeQueueMake(acmeQueue *queue);
acmeError acmeQueueEnd(acmeQueue queue);
acmeError acmeQueueWait(acmeQueue queue);
acmeError acmeMarkMake(acmeMark *mark);
acmeError acmeMarkEnd(acmeMark mark);
acmeError acmeMarkPut(acmeQueue queue, acmeMark mark);
acmeError acmeMarkWait(acmeMark mark);
const char *acmeErrorText(acmeError error);

#endif
