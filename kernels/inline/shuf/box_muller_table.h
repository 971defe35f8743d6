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
#define SHUF_BOX_MULLER_OCTAVE_F32 1.38629436f

/* Relative error at most 2^-26.09. */
#define SHUF_BOX_MULLER_LOG_F32                                                              \
    2.0f, 1.00000179f, 0.666526496f, 0.503737271f, 0.351749033f, 0.680137157f, -1.18454111f, \
        3.94308758f, -4.95830727f, 3.49284053f

/* Relative error at most 2^-24.26. */
#define SHUF_BOX_MULLER_SIN_F32 0.785398185f, -0.0807459801f, 0.00249140873f, -3.68677283e-05f

/* Relative error at most 2^-24.19. */
#define SHUF_BOX_MULLER_COS_F32 1.0f, -0.308424532f, 0.0158504341f, -0.000319157465f

/* 2 ln 2 */
#define SHUF_BOX_MULLER_OCTAVE_F64 1.3862943611198906

/* Relative error at most 2^-56.80. */
#define SHUF_BOX_MULLER_LOG_F64                                                           \
    2.0, 1.0000000000000027, 0.666666666665633, 0.500000000141318, 0.3999999901391855,    \
        0.3333337476287617, 0.28570276954247703, 0.2502249257647639, 0.2190066386684051,  \
        0.2346274140888523, -0.10479793108126455, 2.0156583243130655, -9.224497735039085, \
        37.700289830184225, -118.5851546367817, 294.79081632848613, -567.7316628711926,   \
        833.189879855259, -900.3056460155759, 677.6473134239391, -318.2262047358724,      \
        70.99334161292055

/* Relative error at most 2^-54.49. */
#define SHUF_BOX_MULLER_SIN_F64                                                             \
    0.7853981633974483, -0.0807455121882785, 0.002490394570164845, -3.6576204056009195e-05, \
        3.133614232933476e-07, -1.7569723886703788e-09, 6.817973361233993e-12

/* Relative error at most 2^-61.46. */
#define SHUF_BOX_MULLER_COS_F64                                                  \
    1.0, -0.30842513753404244, 0.015854344243815106, -0.0003259918869247027,     \
        3.5908604399705883e-06, -2.4611354929530877e-08, 1.1499839194714528e-10, \
        -3.838747886557391e-13

#endif
