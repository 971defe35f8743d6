/* SPDX-License-Identifier: MIT
 *
 * The polynomials of shuf/box_muller.h, the lowest coefficient first. Written by
 * tools/box_muller/coefficients.py; do not edit.
 *
 *     LOG  -2 ln(1 - a) / a       in a, 0 < a <= 1/2
 *     SIN  sin(pi / 4 y) / y      in y^2, 0 < y <= 1
 *     COS  cos(pi / 4 y)          in y^2, 0 < y <= 1
 */
#ifndef SHUF_BOX_MULLER_TABLE_H
#define SHUF_BOX_MULLER_TABLE_H

/* 2 ln 2 */
#define SHUF_BOX_MULLER_OCTAVE_F32 0x1.62e43p+0f

/* Relative error at most 2^-26.09. */
#define SHUF_BOX_MULLER_LOG_F32                                                             \
    0x1p+1f, 0x1.00001ep+0f, 0x1.5542f6p-1f, 0x1.01e9dap-1f, 0x1.6830e6p-2f, 0x1.5c3afp-1f, \
        -0x1.2f3e16p+0f, 0x1.f8b718p+1f, -0x1.3d54e8p+2f, 0x1.bf1566p+1f

/* Relative error at most 2^-24.26. */
#define SHUF_BOX_MULLER_SIN_F32 0x1.921fb6p-1f, -0x1.4abc4cp-4f, 0x1.468dcep-9f, -0x1.3544d8p-15f

/* Relative error at most 2^-24.19. */
#define SHUF_BOX_MULLER_COS_F32 0x1p+0f, -0x1.3bd3a4p-2f, 0x1.03b18ap-6f, -0x1.4ea92ep-12f

/* 2 ln 2 */
#define SHUF_BOX_MULLER_OCTAVE_F64 0x1.62e42fefa39efp+0

/* Relative error at most 2^-56.80. */
#define SHUF_BOX_MULLER_LOG_F64                                                                   \
    0x1p+1, 0x1.000000000000cp+0, 0x1.55555555530f7p-1, 0x1.0000000136c2fp-1,                     \
        0x1.999998f031478p-2, 0x1.55557122dfe59p-2, 0x1.248f444e3f0a9p-2, 0x1.003af68336fa3p-2,   \
        0x1.c0868d7580631p-3, 0x1.e08456720da92p-3, -0x1.ad40986aeb7dfp-4, 0x1.0201178b6adap+1,   \
        -0x1.272f15dfc09b3p+3, 0x1.2d9a318df2e6bp+5, -0x1.da5732c6f0521p+6, 0x1.26ca72f05bfdap+8, \
        -0x1.1bdda72103bc2p+9, 0x1.a0984dfbac40ep+9, -0x1.c2271f689c869p+9, 0x1.52d2db2a910a4p+9, \
        -0x1.3e39e88db6c5bp+8, 0x1.1bf92e8b34ffap+6

/* Relative error at most 2^-54.49. */
#define SHUF_BOX_MULLER_SIN_F64                                                                \
    0x1.921fb54442d18p-1, -0x1.4abbce625bdaep-4, 0x1.466bc6774afcep-9, -0x1.32d2ccd46a297p-15, \
        0x1.507821d4b47p-22, -0x1.e2f3f0c7981aap-30, 0x1.dfc5b06c8c20dp-38

/* Relative error at most 2^-61.46. */
#define SHUF_BOX_MULLER_COS_F64                                                  \
    0x1p+0, -0x1.3bd3cc9be45dep-2, 0x1.03c1f081b5a52p-6, -0x1.55d3c7e3bfe56p-12, \
        0x1.e1f50675b20c3p-19, -0x1.a6d1e238f124fp-26, 0x1.f9c4adc48c6bfp-34,    \
        -0x1.b0345fee4420bp-42

#endif
