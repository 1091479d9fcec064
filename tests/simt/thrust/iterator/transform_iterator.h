/* transform_iterator.h - Thrust's transform iterator for the imitated GPU, as far as DeviceScan
 * needs it. */
#ifndef SIMT_TRANSFORM_ITERATOR_H
#define SIMT_TRANSFORM_ITERATOR_H
namespace thrust {
template <class I, class F>
struct transformed {
  I in;
  F function;
  auto operator[](long i) const { return function(in[i]); }
};
template <class I, class F>
transformed<I, F> make_transform_iterator(I in, F function) {
  return {in, function};
}
}  // namespace thrust
#endif
