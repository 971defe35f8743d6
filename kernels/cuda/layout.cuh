/* SPDX-License-Identifier: MIT
 *
 * Divides a workspace among arrays. Each begins at a multiple of 256 bytes, as the workspace does.
 */
#ifndef SHUF__CUDA_LAYOUT_CUH
#define SHUF__CUDA_LAYOUT_CUH

#include <cstdint>

namespace shuf
{

class Layout
{
  public:
    /* With NULL it computes only bytes(). */
    explicit Layout(void *memory) : begin(reinterpret_cast<uintptr_t>(memory)), at(begin)
    {
    }

    template <typename Element> Element *take(uint64_t count)
    {
        auto *const array = reinterpret_cast<Element *>(at);
        at += rounded(count * sizeof(Element));
        return array;
    }

    uint64_t bytes() const
    {
        return at - begin;
    }

    static constexpr uint64_t rounded(uint64_t bytes)
    {
        return (bytes + 255) / 256 * 256;
    }

  private:
    uintptr_t begin, at;
};

} // namespace shuf

#endif
