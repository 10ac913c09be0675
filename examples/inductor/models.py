"""BERT and ResNet-50 as their papers have them, with random weights. Nothing is downloaded."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class BertSizes:
    layers: int
    width: int
    heads: int
    tokens: int
    words: int = 30522


class BertLayer(nn.Module):
    """Attention and two linear layers, each with its residual connection and a layer norm."""

    def __init__(self, sizes: BertSizes) -> None:
        super().__init__()
        width = sizes.width
        self.heads = sizes.heads
        self.query_key_value = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm_of_output = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        heads = self.query_key_value(x).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        attention = functional.scaled_dot_product_attention(query, key, value)
        attention = attention.transpose(1, 2).reshape(batch, tokens, width)
        x = self.norm(x + self.projection(attention))
        return self.norm_of_output(x + self.down(functional.gelu(self.up(x))))


class Bert(nn.Module):
    """The encoder of BERT (Devlin et al., 2018)."""

    def __init__(self, sizes: BertSizes) -> None:
        super().__init__()
        self.word = nn.Embedding(sizes.words, sizes.width)
        self.position = nn.Embedding(sizes.tokens, sizes.width)
        self.norm = nn.LayerNorm(sizes.width)
        self.layers = nn.ModuleList(BertLayer(sizes) for _ in range(sizes.layers))

    def forward(self, words: Tensor) -> Tensor:
        x = self.norm(self.word(words) + self.position.weight)
        for layer in self.layers:
            x = layer(x)
        return x


class Bottleneck(nn.Module):
    """Three convolutions, each with its batch norm, and a residual connection."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.narrow, self.norm1 = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
        self.middle = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.widen, self.norm3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.short = nn.Identity()
        if stride != 1 or channels != 4 * width:
            convolution = nn.Conv2d(channels, 4 * width, 1, stride, bias=False)
            self.short = nn.Sequential(convolution, nn.BatchNorm2d(4 * width))

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.norm1(self.narrow(x)))
        y = functional.relu(self.norm2(self.middle(y)))
        return functional.relu(self.norm3(self.widen(y)) + self.short(x))


class ResNet(nn.Module):
    """ResNet (He et al., 2015) with bottlenecks."""

    def __init__(self, blocks: list[int], width: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.norm = nn.BatchNorm2d(width)
        channels, layers = width, []
        for stage, count in enumerate(blocks):
            for block in range(count):
                stride = 2 if stage and not block else 1
                layers.append(Bottleneck(channels, width << stage, stride))
                channels = 4 * (width << stage)
        self.layers = nn.Sequential(*layers)
        self.classes = nn.Linear(channels, 1000)

    def forward(self, image: Tensor) -> Tensor:
        x = functional.max_pool2d(functional.relu(self.norm(self.stem(image))), 3, 2, 1)
        return self.classes(self.layers(x).mean((2, 3)))


def bert(small: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """BERT-base with 128 words, or two narrow layers with 32."""
    sizes = BertSizes(2, 128, 2, 32, 1000) if small else BertSizes(12, 768, 12, 128)
    return Bert(sizes).eval(), (torch.randint(sizes.words, (1, sizes.tokens)),)


def resnet(small: bool) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """ResNet-50 with an image of 224 x 224, or one with four narrow blocks and 64 x 64."""
    model = ResNet([1, 1, 1, 1], 16) if small else ResNet([3, 4, 6, 3], 64)
    image = torch.randn(1, 3, *([64, 64] if small else [224, 224]))
    return model.eval().to(memory_format=torch.channels_last), (
        image.to(memory_format=torch.channels_last),
    )


MODELS = {"bert": bert, "resnet": resnet}
