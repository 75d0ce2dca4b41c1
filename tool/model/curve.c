// SPDX-License-Identifier: Apache-2.0
#include "tool/model/curve.h"

// A slope of so many of its standard errors is no chance, however much the curve goes up and down.
static const double sure_errors = 4;

double curve_fit(const int64_t *curve, const double *at, uint32_t cells, double *fit) {
    double n = cells, x = 0, xx = 0, y = 0, yy = 0, xy = 0;
    *fit = 0;
    for (uint32_t cell = 0; cell < cells; cell++) {
        const double place = at ? at[cell] : cell, value = (double)curve[cell];
        x += place;
        xx += place * place;
        y += value;
        yy += value * value;
        xy += place * value;
    }
    double x_spread = n * xx - x * x, y_spread = n * yy - y * y, common = n * xy - x * y;
    if (!(x_spread > 0) || !(y_spread > 0)) return 0;
    double explained = common * common / (x_spread * y_spread);
    *fit = explained < 1 ? explained : 1;
    return common / x_spread;
}

int64_t curve_fall(const int64_t *curve, uint32_t from, uint32_t cells) {
    int64_t highest = 0, most = 0;
    for (uint32_t cell = from; cell < cells; cell++) {
        if (curve[cell] > highest) highest = curve[cell];
        if (growth_rise(curve[cell], highest) > most) most = growth_rise(curve[cell], highest);
    }
    return most;
}

bool curve_is_sure(double fit, double moments) {
    return fit * (moments - 2) >= sure_errors * sure_errors * (1 - fit);
}
