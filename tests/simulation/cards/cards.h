/* The header of an API of objects, whose devices are counted and asked for one by one. */
#include <stddef.h>
#include <stdint.h>
typedef enum { CARD_OK = 0, CARD_BUSY = 1, CARD_BAD_VALUE = -1, CARD_NO_MEMORY = -2, CARD_NO_DEVICE = -3, CARD_BAD_HANDLE = -4, CARD_LOST = -5 } cardStatus;
typedef struct card_st *card_t;
typedef struct cardQueue_st *cardQueue;
typedef struct cardFence_st *cardFence;
cardStatus cardInit(unsigned flags);
cardStatus cardCount(int *count);
cardStatus cardGet(int index, card_t *device);
cardStatus cardName(card_t device, char *text, size_t room);
cardStatus cardMemory(card_t device, uint64_t *bytes);
cardStatus cardQueueCreate(card_t device, cardQueue *queue);
cardStatus cardQueueDestroy(cardQueue queue);
cardStatus cardQueueWait(cardQueue queue);
cardStatus cardFenceCreate(card_t device, cardFence *fence);
cardStatus cardFenceDestroy(cardFence fence);
cardStatus cardQueueSignal(cardQueue queue, cardFence fence);
cardStatus cardQueueHold(cardQueue queue, cardFence fence);
cardStatus cardFenceState(cardFence fence, int *state);
cardStatus cardFenceWait(cardFence fence, uint64_t timeout);
cardStatus cardFenceTime(cardFence fence, uint64_t *nanoseconds);
cardStatus cardMemAlloc(card_t device, size_t bytes, void **address);
cardStatus cardMemFree(card_t device, void *address);
cardStatus cardCopy(cardQueue queue, void *to, const void *from, size_t bytes);
cardStatus cardFill(cardQueue queue, void *at, int value, size_t bytes);
