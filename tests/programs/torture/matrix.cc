// SPDX-License-Identifier: Apache-2.0
// A matrix of raw arrays. Planted: the constructor's first array is lost where the second throws.
#include <cstdio>
#include <memory>
#include <new>

class Matrix {
  public:
    Matrix(int rows, int columns)
        : columns(columns), values(new double[rows * columns]()), used(new bool[rows]()) {}
    Matrix(const Matrix &) = delete;
    ~Matrix() {
#ifndef RIGHT
        delete[] values;
        delete[] used;
#endif
    }
    double &at(int row, int column) {
        used[row] = true;
        return values[row * columns + column];
    }

  private:
    int columns;
#ifdef RIGHT
    std::unique_ptr<double[]> values;
    std::unique_ptr<bool[]> used;
#else
    double *values;
    bool *used;
#endif
};

int main() {
    try {
        Matrix matrix(30, 40);
        for (int i = 0; i < 30; i++) matrix.at(i, i) = i;
        std::printf("%g\n", matrix.at(7, 7) + matrix.at(8, 8));
    } catch (const std::bad_alloc &) {
        std::fputs("no memory for the matrix\n", stderr);
        return 1;
    }
    return 0;
}
