By0Jx^gzsÿ^@{Sv]@V
xEjzI{Ej{Zv\W`ZxskI{cNzveW`Z*ksS,bDcE_b^'ESb9BVeFkkexakJx{XVlxpyylxayyexwg|xpyl6syyIKg{JNY\ÜsHJì