/* counting_iterator.h - Thrust's counting_iterator for the imitated GPU, as far as DeviceScan
 * needs it. */
#ifndef SIMT_COUNTING_ITERATOR_H
#define SIMT_COUNTING_ITERATOR_H
namespace thrust {
template <class T>
struct counting_iterator {
  T first;
  counting_iterator(T value) : first(value) {}
  T operator[](long i) const { return first + (T)i; }
};
}  // namespace thrust
#endif
